/* Without the script everything is there. With it the tasks can be filtered and sorted, kernels copied,
 * and values read off the curves. */
(function() {
var d = document, all = [].slice.call(d.querySelectorAll('section.task'));
var bar = d.getElementById('tools');
if (bar && all.length) {
    bar.hidden = false;
    var q = bar.querySelector('input'), s = bar.querySelector('select'), home = all[0].parentNode;
    var end = all[all.length - 1].nextSibling;
    function show() {
        var w = q.value.toLowerCase(), n = 0;
        all.forEach(function(e) {
            var hit = (e.id + ' ' + e.dataset.tags).toLowerCase().indexOf(w) >= 0;
            e.hidden = !hit;
            n += hit;
        });
        bar.querySelector('output').textContent = n + ' of ' + all.length;
    }
    function sort() {
        var k = s.value, o = all.slice();
        if (k != 'page')
            o.sort(function(a, b) {
                return k == 'name' ? (a.id < b.id ? -1 : 1) : b.dataset[k] - a.dataset[k];
            });
        o.forEach(function(e) {
            home.insertBefore(e, end);
        });
    }
    q.addEventListener('input', show);
    s.addEventListener('change', sort);
    show();
}
[].forEach.call(d.querySelectorAll('button.copy'), function(c) {
    c.hidden = false;
    c.addEventListener('click', function() {
        var t = c.parentNode.parentNode.querySelector('pre').textContent;
        function done() {
            c.textContent = 'copied';
            setTimeout(function() {
                c.textContent = 'copy';
            }, 1500);
        }
        if (navigator.clipboard) navigator.clipboard.writeText(t).then(done);
        else {
            var a = d.createElement('textarea');
            a.value = t;
            d.body.appendChild(a);
            a.select();
            d.execCommand('copy');
            a.remove();
            done();
        }
    });
});
function open() {
    var e = location.hash && d.getElementById(location.hash.slice(1));
    if (e && e.querySelector('details')) e.querySelector('details').open = true;
    for (var p = e; p; p = p.parentNode)
        if (p.tagName == 'DETAILS') {
            p.open = true;
            e.scrollIntoView();
        }
}
addEventListener('hashchange', open);
open();
var tip = d.createElement('div');
tip.id = 'tip';
tip.hidden = true;
d.body.appendChild(tip);
[].forEach.call(d.querySelectorAll('svg.chart'), function(g) {
    var p = g.dataset.plot.split(' ').map(Number), kind = g.dataset.scale,
        names = g.dataset.names && g.dataset.names.split('|'),
        mark = d.createElementNS(g.namespaceURI, 'line'),
        all = [].map.call(g.querySelectorAll('g.series'), function(e) {
            return {
                e: e,
                name: e.dataset.name,
                on: true,
                p: [].slice.call(e.querySelector('polyline').points)
            };
        });
    mark.setAttribute('class', 'mark');
    mark.setAttribute('y1', p[2]);
    mark.setAttribute('y2', p[3]);
    mark.style.display = 'none';
    g.appendChild(mark);
    function value(y) {
        var f = (p[3] - y) / (p[3] - p[2]);
        return kind == 'log' ? p[6] * Math.pow(p[7] / p[6], f) : p[6] + (p[7] - p[6]) * f;
    }
    function text(v) {
        return kind == 'log'     ? v.toFixed(2) + '×'
               : kind == 'share' ? (100 * v).toFixed(1) + '%'
                                 : String(Number(v.toPrecision(3)));
    }
    function leave() {
        tip.hidden = true;
        mark.style.display = 'none';
    }
    function move(e) {
        var r = g.getBoundingClientRect(),
            x = (e.clientX - r.left) / r.width * g.viewBox.baseVal.width, at = null, rows = [];
        all.forEach(function(s) {
            if (s.on)
                s.p.forEach(function(q) {
                    if (at === null || Math.abs(q.x - x) < Math.abs(at - x)) at = q.x;
                });
        });
        if (at === null) return leave();
        all.forEach(function(s) {
            if (s.on)
                s.p.some(function(q) {
                    if (Math.abs(q.x - at) > .3) return false;
                    rows.push([ value(q.y), s.name ]);
                    return true;
                });
        });
        rows.sort(function(a, b) {
            return b[0] - a[0];
        });
        var k = Math.round(p[4] + (p[5] - p[4]) * (at - p[0]) / (p[1] - p[0]));
        tip.textContent =
            (names ? names[k] : g.dataset.x + ' ' + k) + rows.map(function(w) {
                return '\n' + text(w[0]) + (w[1] ? '  ' + w[1] : '');
            }).join('');
        tip.hidden = false;
        mark.style.display = '';
        mark.setAttribute('x1', at);
        mark.setAttribute('x2', at);
        tip.style.left =
            Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
        tip.style.top =
            Math.max(4, Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)) + 'px';
    }
    g.addEventListener('pointermove', move);
    g.addEventListener('pointerdown', move);
    g.addEventListener('pointerleave', leave);
    [].forEach.call(g.querySelectorAll('text[data-of]'), function(k) {
        function turn() {
            all.forEach(function(s) {
                if (s.name != k.dataset.of) return;
                s.on = !s.on;
                s.e.style.display = s.on ? '' : 'none';
                k.classList.toggle('off', !s.on);
                k.setAttribute('aria-pressed', s.on);
            });
        }
        k.setAttribute('role', 'button');
        k.setAttribute('tabindex', '0');
        k.setAttribute('aria-pressed', true);
        k.addEventListener('click', turn);
        k.addEventListener('keydown', function(e) {
            if (e.key == 'Enter' || e.key == ' ') {
                e.preventDefault();
                turn();
            }
        });
    });
});
})();
