/**
 * The look of the page. It must not contain `"`, `&` and `<`: they would be escaped, and the style would not match the hash of the
 * Content-Security-Policy.
 */
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
body {
  margin: 0;
  background: var(--ground);
  color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', sans-serif;
  overflow-wrap: anywhere;
}
header, main { max-width: 90rem; margin: 0 auto; padding: 0 1.5rem; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1.5rem; padding-top: 1.25rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; flex: 1; }
main { padding-bottom: 4rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.2rem; margin: 0 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 0.5rem; }
p { margin: 0.5rem 0; max-width: 80ch; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
main > section, .login {
  background: var(--surface);
  border: 1px solid var(--line);
  border-radius: 0.5rem;
  padding: 1.25rem 1.5rem;
  margin: 1.25rem 0;
}
.login { max-width: 26rem; margin: 10vh auto 0; }
.state { margin: 0.75rem 0 0; }
.hint, small, .none { color: var(--muted); }
.hint, small { font-size: 0.875rem; }
small { display: block; font-weight: 400; }
main > section.error, main > section.notice, p.error, p.notice { border: 1px solid; border-left-width: 0.4rem; }
p.error, p.notice { padding: 0.5rem 0.75rem; border-radius: 0.25rem; }
main > section.error, p.error { background: var(--bad-ground); border-color: var(--bad); }
main > section.notice, p.notice { background: var(--care-ground); border-color: var(--care); }
.error ul, .notice ul { margin: 0.25rem 0 0; padding-left: 1.25rem; }
.filters { padding-left: 1.5rem; }
.mode, .outcome { display: inline-block; padding: 0 0.5rem; border-radius: 1rem; font-size: 0.875rem; white-space: nowrap; }
.mode { border: 1px solid var(--line); color: var(--muted); }
.outcome { border: 1px solid; font-weight: 600; color: var(--muted); }
.outcome.allowed, .outcome.changed { color: var(--good); background: var(--good-ground); }
.outcome.rejected, .outcome.failed { color: var(--bad); background: var(--bad-ground); }
.outcome.allowed-on-error, .outcome.audit, .mode.audit { color: var(--care); background: var(--care-ground); border-color: currentcolor; }
.verdict { border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.75rem 1rem; margin: 1rem 0; }
.verdict h3 { margin: 0; font-size: 1.1rem; }
.verdict h3 .outcome { font-size: 1.1rem; }
.warning { color: var(--care); }
.scrolls { overflow: auto; border: 1px solid var(--line); border-radius: 0.25rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.45rem 0.75rem; border-bottom: 1px solid var(--line); }
tbody tr:last-child > * { border-bottom: 0; }
.long { max-height: 40rem; }
thead th { position: sticky; top: 0; background: var(--ground); box-shadow: inset 0 -1px var(--line); white-space: nowrap; }
tbody th { font-weight: 600; overflow-wrap: normal; }
.id, .origin, .value, textarea { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
.origin, .value { font-size: 0.8rem; }
.id { font-size: 0.75rem; }
.time, .number { white-space: nowrap; }
.number { font-variant-numeric: tabular-nums; }
.outcomes { min-width: 12rem; }
.what { min-width: 10.5rem; }
.who { min-width: 16rem; }
.why { min-width: 16rem; }
.why p { margin: 0; }
.why > bdi + p, .why p + p { margin-top: 0.35rem; }
.request { min-width: 11.5rem; }
/* A name may be long and a message longer: neither pushes the next rows out of sight. */
.what > bdi, .who bdi, .why > bdi { display: block; max-height: 10rem; overflow: auto; }
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
button.plain { margin: 0; background: none; color: var(--accent); }
form.inline { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 0.75rem; margin: 0.75rem 0; }
form.inline label, form.inline button { margin: 0; }
form.inline input { flex: 1; min-width: 10rem; max-width: 30rem; }
.projects { gap: 0.5rem; margin: 0.75rem 0; }
.projects a { border: 1px solid var(--line); border-radius: 1rem; padding: 0.2rem 0.8rem; text-decoration: none; }
.projects a:hover { border-color: var(--accent); }
.patterns { position: absolute; }
svg { display: block; overflow: hidden; }
/* Letters keep clear of the lines behind them. */
svg text { fill: var(--text); font-size: 0.8rem; unicode-bidi: isolate; paint-order: stroke; stroke: var(--surface); stroke-width: 4; stroke-linejoin: round; }
svg .aside { fill: var(--muted); font-size: 0.75rem; }
svg .refusal { fill: var(--bad); }
.hatch-ground { fill: var(--surface); }
.hatch-line { fill: var(--accent); }
.bar { stroke-width: 1; }
.bar.used, .bar.active { fill: var(--accent); stroke: var(--accent); }
.bar.planned, .bar.pending { fill: url(#hatched); stroke: var(--accent); }
.bar.left { fill: var(--ground); stroke: var(--line); }
.bar.ended { fill: var(--line); stroke: var(--field); }
.bar.refused { fill: none; stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 5 3; }
.limit { stroke: var(--bad); stroke-width: 3; }
.legend, .budgets { list-style: none; margin: 0.5rem 0; padding: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; font-size: 0.875rem; color: var(--muted); }
.legend li { display: flex; align-items: center; gap: 0.4rem; }
.budgets { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem 2rem; margin: 1rem 0; }
.budgets p { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; margin: 0 0 0.35rem; max-width: none; }
.budgets small { flex-basis: 100%; }
.timeline { margin: 0.75rem 0; }
.timeline .tick line { stroke: var(--line); }
.timeline .tick text { fill: var(--muted); font-size: 0.75rem; }
.timeline .now line { stroke: var(--care); stroke-width: 2; }
.timeline .now text { fill: var(--care); font-weight: 700; font-size: 0.75rem; }
@media (max-width: 40rem) {
  .wide, .tick.odd text { display: none; }
  header, main { padding-left: 0.75rem; padding-right: 0.75rem; }
  header { justify-content: space-between; }
  nav { order: 1; flex-basis: 100%; }
  main > section { padding: 1rem; }
  tbody th { min-width: 9rem; overflow-wrap: anywhere; }
  .value, .origin { min-width: 9rem; }
}
`;
