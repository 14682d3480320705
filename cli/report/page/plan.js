// What a plan adds to a page: its proposals, its lanes, what is where, the frontier.
