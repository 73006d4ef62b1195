"""Generators of recurrent networks. The third value of each counts the terms of an element."""
from ops_draw import either


def network(gates, depth=2):
    def generate(r):
        layers, directions = r.choice([1, 1, 2, 3]), r.choice([1, 2])
        steps, batch = r.choice([1, 2, 5, 9]), r.choice([1, 2, 3, 10])
        inputs, hidden, biases = r.choice([1, 3, 6]), r.choice([1, 4, 7, 12]), r.random() < 0.7
        first = r.random() < 0.5
        if gates == 1:  # without gates, a rounding of the state grows from step to step
            layers, steps, hidden = min(layers, depth), min(steps, depth), min(hidden, 4)
        params = []
        for layer in range(layers):
            for _ in range(directions):
                own = hidden * directions if layer else inputs
                params += [either(r, [gates * hidden, own]), either(r, [gates * hidden, hidden])]
                if biases:
                    params += [either(r, [gates * hidden]), either(r, [gates * hidden])]
        state = lambda: either(r, [layers * directions, batch, hidden])
        x = either(r, [batch, steps, inputs] if first else [steps, batch, inputs])
        hx = [state(), state()] if gates == 4 else state()
        args = [x, hx, params, biases, layers, r.choice([0.0, 0.5]), False, directions == 2, first]
        return args, {}, (inputs + hidden + 2) * layers * steps

    return generate


EXACT = {}
TRANSCENDENTAL = {
    "rnn_tanh.input": network(1),
    "rnn_relu.input": network(1, 1),
    "gru.input": network(3),
    "lstm.input": network(4),
}
