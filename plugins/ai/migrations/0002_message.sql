-- The platform's id of the message that a turn answered: one that was edited is answered anew, and the turn it had leaves.
ALTER TABLE messages ADD COLUMN message TEXT;
