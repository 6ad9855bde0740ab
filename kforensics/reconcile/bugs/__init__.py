"""Find known bugs of Kafka by the traces that they leave."""
