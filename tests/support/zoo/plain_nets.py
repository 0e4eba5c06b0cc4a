"""Models of documentation and demo: 784-64-10, 196-32-10, the arc-fault example."""

from network import Net


def dense(name, seed, sizes):
    net = Net(name, seed, sizes[:1])
    net.add_prequant(False)
    for n in sizes[1:-1]:
        net.linear(n)
    net.linear(sizes[-1], relu=False)
    net.task = "classify"
    net.check_alive()
    return net


def arc_fault():
    net = Net("arc_fault", 5, (1, 64, 2))
    net.add_prequant(True)
    net.conv(3, (16, 2))
    net.flatten("Reshape")
    net.linear(160)
    net.linear(2, relu=False)
    net.task = "classify"
    net.check_alive()
    return net


def all_plain():
    return [dense("dense_784_64_10", 3, (784, 64, 10)), dense("dense_196_32_10", 4, (196, 32, 10)), arc_fault()]
