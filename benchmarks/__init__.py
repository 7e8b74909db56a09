"""What a message, a hop and a start cost, as ratios to the least that Python can do."""
