/* What is below the table of stages is laid out after the first paint, which so takes about half the
 * work. Not where the page opens elsewhere: at a link's target, or where it was before a reload. */
(function(r, n) {
n = performance.getEntriesByType('navigation')[0];
if (location.hash || !n || n.type != 'navigate') return;
r.className = 'first';
function show() {
    r.className = '';
}
try {
    new PerformanceObserver(show).observe({type: 'paint', buffered: true});
} catch (e) {
    show();
}
setTimeout(show, 1000);
})(document.documentElement)
