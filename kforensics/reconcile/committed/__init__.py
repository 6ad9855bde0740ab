"""Was it committed? The proofs, and the judgement."""
