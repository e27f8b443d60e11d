/** The style of the console. Scripts read the colours of charts from its variables. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: #f4f6f9;
  --surface: #ffffff;
  --text: #1b212b;
  --muted: #545f6f;
  --line: #d5dbe3;
  --field: #7b8797;
  --accent: #1d5bbf;
  --on-accent: #ffffff;
  --good: #156a3e;
  --good-ground: #e2f4e9;
  --bad: #a91f18;
  --bad-ground: #fdeae8;
  --care: #7a4e00;
  --care-ground: #fdf2da;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #11151b;
    --surface: #1a202a;
    --text: #e6eaf0;
    --muted: #a2adbc;
    --line: #303a48;
    --field: #768395;
    --accent: #8ab8ff;
    --on-accent: #0d1a2e;
    --good: #7bdba4;
    --good-ground: #153126;
    --bad: #ffa79f;
    --bad-ground: #3d1e1e;
    --care: #f3c76d;
    --care-ground: #382c13;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0;
  background: var(--ground);
  color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif;
  overflow-wrap: anywhere;
}
.top, main { max-width: 90rem; margin: 0 auto; padding: 0 1.5rem; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1rem; padding-top: 1rem; }
.brand { font-weight: 700; color: var(--text); text-decoration: none; }
nav { flex: 1; font-size: 0.95rem; }
nav ul { list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.15rem; }
nav a { display: inline-block; padding: 0.3rem 0.5rem; border-radius: 0.25rem; text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav a[aria-current] { background: var(--accent); color: var(--on-accent); font-weight: 600; }
.account { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem; }
.account small { display: inline; }
.title { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.5rem 1rem; margin-top: 1.25rem; }
.skip { position: absolute; left: 0.5rem; top: -10rem; z-index: 3; padding: 0.5rem 1rem; background: var(--accent); color: var(--on-accent); }
.skip:focus { top: 0.5rem; }
/* Only for screen readers. */
.unseen { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
[hidden] { display: none; }
main { padding-bottom: 4rem; }
main:focus { outline: none; }
h1 { font-size: 1.5rem; margin: 0; min-width: 0; }
h2 { font-size: 1.2rem; margin: 0 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 0.5rem; }
p { margin: 0.5rem 0; max-width: 80ch; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
main > section, main [data-live]:where(div) > section, .login {
  background: var(--surface);
  border: 1px solid var(--line);
  border-radius: 0.5rem;
  padding: 1.25rem 1.5rem;
  margin: 1.25rem 0;
}
.login { max-width: 26rem; margin: 10vh auto 0; }
/* The padding of a card is the same above its first line and below its last. */
main > section > :first-child, main [data-live]:where(div) > section > :first-child { margin-top: 0; }
main > section > :last-child, main [data-live]:where(div) > section > :last-child { margin-bottom: 0; }
.state { margin: 0.75rem 0 0; }
.hint, small, .none { color: var(--muted); }
.hint, small { font-size: 0.875rem; }
small { display: block; font-weight: 400; }
section.error, section.notice, p.done, p.error, p.notice { border: 1px solid; border-left-width: 0.4rem; }
p.done, p.error, p.notice { padding: 0.5rem 0.75rem; border-radius: 0.25rem; }
main section.error, p.error { background: var(--bad-ground); border-color: var(--bad); }
main section.notice, p.notice { background: var(--care-ground); border-color: var(--care); }
p.done { background: var(--good-ground); border-color: var(--good); }
.error ul, .notice ul { margin: 0.25rem 0 0; padding-left: 1.25rem; }
.filters { padding-left: 1.5rem; }
.limits { list-style: none; padding: 0; margin: 0.15rem 0 0.5rem; color: var(--muted); font-size: 0.875rem; }
.mode, .outcome { display: inline-block; padding: 0 0.5rem; border-radius: 1rem; font-size: 0.875rem; white-space: nowrap; }
.mode { border: 1px solid var(--line); color: var(--muted); }
.outcome { border: 1px solid; font-weight: 600; color: var(--muted); }
.outcome.allowed, .outcome.changed { color: var(--good); background: var(--good-ground); }
.outcome.rejected, .outcome.failed { color: var(--bad); background: var(--bad-ground); }
.outcome.allowed-on-error, .outcome.audit, .outcome.bypassed, .mode.audit { color: var(--care); background: var(--care-ground); border-color: currentcolor; }
.warning { color: var(--care); }
/* Hidden elements within a table must not make the page wider: "position". */
.scrolls { position: relative; overflow: auto; border: 1px solid var(--line); border-radius: 0.25rem; }
.scrolls + .scrolls { margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { text-align: left; padding: 0.45rem 0.75rem; color: var(--muted); font-size: 0.875rem; }
th, td { text-align: left; vertical-align: top; padding: 0.45rem 0.75rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
.long { max-height: 40rem; }
thead th { position: sticky; top: 0; background: var(--ground); box-shadow: inset 0 -1px var(--line); white-space: nowrap; }
tbody th { font-weight: 600; overflow-wrap: normal; }
tbody .what, tbody .who { overflow-wrap: anywhere; }
.id, .origin, .value, textarea { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
.origin, .value { font-size: 0.8rem; }
.id { font-size: 0.75rem; }
.time, .number, .word { white-space: nowrap; }
.time time b { display: block; }
time[data-local]::after { content: " (" attr(data-local) ")"; color: var(--muted); font-size: 0.875rem; font-weight: 400; }
td time[data-local]::after, th time[data-local]::after { content: attr(data-local); display: block; }
.number { font-variant-numeric: tabular-nums; }
.outcomes { min-width: 13.25rem; }
.what { min-width: 8rem; }
.who { min-width: 10rem; }
.why { min-width: 15rem; }
.diff { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 0.8125rem; }
.diff del, .diff ins { display: block; text-decoration: none; padding: 0 0.35rem; }
.diff del { background: var(--bad-ground); color: var(--bad); }
.diff ins { background: var(--good-ground); color: var(--good); }
.why p { margin: 0; }
.why > bdi + p, .why p + p { margin-top: 0.35rem; }
.request { min-width: 9.5rem; }
/* Long names and messages are cut in lists, so that the next rows stay visible. Their own page shows them in full. */
.long .what > bdi, .long .what > a, .long .who bdi, .long .why > bdi { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 8; overflow: hidden; }
.value { min-width: 16rem; }
.origin { min-width: 12rem; }
.default > * { color: var(--muted); font-weight: 400; }
label { display: block; font-weight: 600; margin: 0.75rem 0 0.25rem; }
input, select, button { font: inherit; }
input, select, textarea, button { color: inherit; border: 1px solid var(--field); border-radius: 0.25rem; padding: 0.4rem 0.6rem; }
input, select, textarea { background: var(--ground); }
input, textarea { width: 100%; }
textarea { font-size: 0.875rem; line-height: 1.4; resize: vertical; }
button { margin-top: 0.75rem; padding: 0.45rem 1.25rem; background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; cursor: pointer; }
button.plain { margin: 0; background: none; color: var(--accent); border-color: var(--field); font-weight: 400; padding: 0.3rem 0.8rem; }
button.plain[aria-pressed="true"]::before { content: "● "; color: var(--good); }
button.plain[aria-pressed="false"]::before { content: "‖ "; color: var(--care); }
.choices { list-style: none; margin: 0; padding: 0; }
.choices button { margin: 0.25rem 0; text-align: left; }
.choices [aria-current], .choices [aria-current] small { background: var(--accent); color: var(--on-accent); }
.fields > div { min-width: 0; align-self: start; }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: 0 1rem; }
.mistake { color: var(--bad); }
.pager { flex: none; margin: 0.75rem 0 0; }
.pager ul { align-items: center; gap: 0.25rem 0.75rem; }
.pager li { padding: 0.3rem 0; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; padding: 0.25rem 0; }
.facts { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); gap: 0.35rem 1.25rem; margin: 0.75rem 0 1rem; }
.facts dt { color: var(--muted); }
.facts dd { margin: 0; min-width: 0; }
.tiles { list-style: none; padding: 0; margin: 0.75rem 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr)); gap: 0.75rem; }
.tiles li { border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.6rem 0.9rem; min-width: 0; }
.tiles b { display: block; font-size: 1.35rem; }
.tiles li.care { border-color: var(--care); background: var(--care-ground); }
.tiles li.bad { border-color: var(--bad); background: var(--bad-ground); }
figure { margin: 0.75rem 0; }
figcaption { font-weight: 600; }
[data-chart] { min-width: 0; }
[data-chart]:empty { display: none; }
form.inline { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 0.75rem; margin: 0.75rem 0; }
form.inline label, form.inline button { margin: 0; }
form.inline input:not([type=hidden]) { flex: 1; min-width: 10rem; max-width: 30rem; }
.patterns { position: absolute; }
svg { display: block; overflow: hidden; max-width: 100%; }
/* An outline keeps letters readable on lines. */
svg text { fill: var(--text); font-size: 0.8rem; unicode-bidi: isolate; paint-order: stroke; stroke: var(--surface); stroke-width: 4; stroke-linejoin: round; }
.hatch-ground { fill: var(--surface); }
.hatch-line { fill: var(--accent); }
.bar { stroke-width: 1; }
.bar.used, .bar.active { fill: var(--accent); stroke: var(--accent); }
.bar.planned, .bar.pending { fill: url(#hatched); stroke: var(--accent); }
.bar.left { fill: var(--ground); stroke: var(--line); }
.bar.ended { fill: var(--line); stroke: var(--field); }
.bar.refused { fill: none; stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 3; }
.limit { stroke: var(--bad); stroke-width: 3; }
.legend { list-style: none; margin: 0.5rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; font-size: 0.875rem; color: var(--muted); }
.legend li { display: flex; align-items: center; gap: 0.4rem; }
/* Over uPlot's own style sheet. */
.uplot { font-family: inherit; max-width: 100%; }
.u-legend { width: auto; font-size: 0.875rem; margin: 0.25rem 0 0; text-align: left; color: var(--muted); }
.u-legend th, .u-legend td { border: 0; padding: 0.1rem 0.3rem; }
.u-select { background: color-mix(in srgb, var(--accent) 15%, transparent); }
.u-hz .u-cursor-x, .u-vt .u-cursor-y, .u-hz .u-cursor-y, .u-vt .u-cursor-x { border-color: var(--muted); }
.what > bdi { max-height: none; }
select { max-width: 100%; }
.timeline.movable .track { cursor: grab; touch-action: pan-y; }
.timeline ol { list-style: none; margin: 0; padding: 0; }
.lease-row { display: grid; grid-template-columns: minmax(0, 20rem) minmax(0, 1fr); gap: 0 1rem; align-items: center; border-top: 1px solid var(--line); }
.lease-row.axis { border-top: 0; }
/* The lines of days continue from row to row; bars are centred, whatever the height of the text. */
ol .track { height: 100%; min-height: 2rem; }
ol .track .bar { translate: 0 -6px; }
.lease-row .words { padding: 0.3rem 0; min-width: 0; }
.lease-row .words p { margin: 0; display: flex; gap: 0.5rem; align-items: baseline; }
.lease-row .words bdi { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; max-width: 100%; }
.lease-row .words p small { flex: none; max-width: 9rem; margin-left: auto; text-overflow: ellipsis; }
.lease-row .words small { max-height: 9em; overflow: hidden; }
.lease-row .words small bdi { white-space: normal; }
.lease-row .words small.id { display: inline; }
.lease-row-state { flex: none; font-size: 0.8rem; color: var(--muted); }
.lease-row-state.refused, .lease-row .reason { color: var(--bad); }
.lease-row-tick { stroke: var(--line); }
.lease-row-now { stroke: var(--care); stroke-width: 2; }
.lease-row-now-text { font-weight: 700; }
svg.track text { font-size: 0.75rem; fill: var(--muted); stroke: none; }
svg.track .lease-row-now-text { fill: var(--care); }
/* The text of links is aligned with other text. */
.moves, .pages { margin: 0.5rem 0 0.5rem -0.5rem; }
.share { display: grid; grid-template-columns: minmax(6rem, 1fr); gap: 0.2rem; min-width: 10rem; }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 12rem), 1fr)); gap: 0 1rem; align-items: end; }
fieldset { border: 1px solid var(--line); border-radius: 0.5rem; margin: 1rem 0; padding: 0.5rem 1rem 1rem; min-width: 0; }
legend { font-weight: 600; padding: 0 0.4rem; }
[aria-invalid=true] { border-color: var(--bad); border-width: 2px; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); border-radius: 0.25rem; padding: 0.6rem 0.75rem; background: var(--ground); font-size: 0.875rem; }
.suggestions { padding-left: 1.25rem; }
.change-removed { color: var(--bad); }
@media (max-width: 69.9rem) { .lease-row-label.odd text { display: none; } }
@media (max-width: 40rem) {
  .lease-row { grid-template-columns: minmax(0, 1fr); }
  .lease-row.axis > div { display: none; }
  .top, main { padding-left: 0.75rem; padding-right: 0.75rem; }
  .top { justify-content: space-between; }
  nav { order: 1; flex-basis: 100%; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: 0.5rem; }
  main > section, main [data-live]:where(div) > section { padding: 1rem; }
  tbody th { min-width: 9rem; overflow-wrap: anywhere; }
  .value, .origin { min-width: 9rem; }
}
`;
