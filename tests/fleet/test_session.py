"""What the user has set for Spark stays, wherever Spark would take it from."""

import pytest

pytest.importorskip("pyspark")

from kforensics.fleet.session import _defaults, configured

FILE = """\
# the cluster's
spark.ui.enabled                 true
spark.driver.extraJavaOptions = -Djava.security.krb5.conf=/etc/krb5.conf -Da=b
spark.master:spark://here:7077
not.a.setting 1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text(FILE)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    return tmp_path


def test_settings_are_taken_from_where_users_keep_them(folder, monkeypatch):
    in_file = {
        "spark.ui.enabled": "true",
        "spark.driver.extraJavaOptions": "-Djava.security.krb5.conf=/etc/krb5.conf -Da=b",
        "spark.master": "spark://here:7077",
    }
    assert in_file == configured()
    monkeypatch.setenv(
        "PYSPARK_SUBMIT_ARGS", "--conf 'spark.ui.enabled=false' --master local[3] --conf spark.x=a=b pyspark-shell"
    )
    more = {"spark.ui.enabled": "false", "spark.master": "local[3]", "spark.x": "a=b"}
    assert in_file | more == configured()
    other = folder / "other.conf"
    other.write_text("spark.app.name mine\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {other} pyspark-shell")
    assert {"spark.app.name": "mine"} == configured()


def test_nothing_is_set_that_would_push_a_setting_of_users_aside(folder):
    ours = _defaults("local[2]", folder / "words", "/scratch")

    assert "spark.driver.extraJavaOptions" not in ours
    assert "log4j2.configurationFile" in ours["spark.driver.defaultJavaOptions"]
    (folder / "log4j2.properties").write_text("rootLogger.level = info\n")
    assert "log4j2" not in _defaults("local[2]", folder / "words", "/scratch")["spark.driver.defaultJavaOptions"]
    assert {"spark.local.dir", "spark.driver.host"}.isdisjoint(
        _defaults("spark://here:7077", folder / "words", "/scratch")
    )
