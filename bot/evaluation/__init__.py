"""How well documents are found: questions whose answers are known are asked, and what was found is measured and reported."""
