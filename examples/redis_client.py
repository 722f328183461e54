#!/usr/bin/python3
"""The module from Python: who was here, in what combination, and lately.

    examples/redis_client.py [SOCKET]      a server with the module loaded; without SOCKET, localhost:6379
"""
import sys

import redis

r = redis.Redis(unix_socket_path=sys.argv[1]) if len(sys.argv) > 1 else redis.Redis()
do = r.execute_command
r.delete("visitors", "online", "log", "recent", "everyone", "{week}mon", "{week}tue", "{week}all")

# A filter for 1000 visitors, wrong for one stranger in a thousand, that grows when more come.
do("TAMIS.RESERVE", "visitors", 0.001, 1000)
fresh = do("TAMIS.MADD", "visitors", "ann", "bob", "ann", "cem", "bob")
print("seen before:", fresh.count(0))
assert do("TAMIS.MEXISTS", "visitors", "ann", "zoe") == [1, 0]

# Clients that know BF.* see the same value.
assert r.bf().exists("visitors", "cem") == 1

# Removal: who is online now.
do("TAMIS.RESERVE", "online", 0.001, 1000, "DELETABLE")
do("TAMIS.MADD", "online", "ann", "bob")
do("TAMIS.DEL", "online", "ann")
print("ann online:", bool(do("TAMIS.EXISTS", "online", "ann")))

# Union: the days make a week.
do("TAMIS.MADD", "{week}mon", "ann")
do("TAMIS.MADD", "{week}tue", "bob")
do("TAMIS.MERGE", "{week}all", 2, "{week}mon", "{week}tue")
print("in the week:", do("TAMIS.MEXISTS", "{week}all", "ann", "bob", "zoe"))

# Records: values that occur together.
do("TAMIS.XRESERVE", "log", 0.01, 10000, "ATTRIBUTES", 2, "ip", "user")
do("TAMIS.XADD", "log", "ip=10.1.2.3", "user=ann")
do("TAMIS.XADD", "log", "ip=10.9.9.9", "user=bob")
print("ann at 10.9.9.9:", bool(do("TAMIS.XQUERY", "log", "ip=10.9.9.9", "user=ann")[0]))

# What was seen within the last hour.
do("TAMIS.RESERVE", "recent", 0.01, 10000, "GROWTH", "window", "WINDOW", 3600)
print("new within the hour:", bool(do("TAMIS.ADD", "recent", "10.1.2.3")))
