"""The load of the chaos check: clients that go on over kills, and remember what they were promised."""
