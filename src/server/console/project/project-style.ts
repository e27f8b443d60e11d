/** The look of the pages of projects, Try it and Budgets. As in `STYLE`: no `"`, `&` and `<`. */
export const PROJECT_STYLE = `
/* What is unseen within a table must not make the page wider. */
.scrolls { position: relative; }
.what > bdi { max-height: none; }
select { max-width: 100%; }
.lanes.movable .track { cursor: grab; touch-action: pan-y; }
.lanes ol { list-style: none; margin: 0; padding: 0; }
.lane { display: grid; grid-template-columns: minmax(0, 20rem) minmax(0, 1fr); gap: 0 1rem; align-items: center; border-top: 1px solid var(--line); }
.lane.axis { border-top: 0; }
/* The lines of the days go through from row to row; the bars are in the middle, however many words there are. */
ol .track { height: 100%; min-height: 2rem; }
ol .track .bar { translate: 0 -6px; }
.lane .words { padding: 0.3rem 0; min-width: 0; }
.lane .words p { margin: 0; display: flex; gap: 0.5rem; align-items: baseline; }
.lane .words bdi { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0; max-width: 100%; }
.lane .words p small { flex: none; max-width: 9rem; margin-left: auto; text-overflow: ellipsis; }
.lane .words small { max-height: 9em; overflow: hidden; }
.lane .words small bdi { white-space: normal; }
.lane .words small.id { display: inline; }
.lane-state { flex: none; font-size: 0.8rem; color: var(--muted); }
.lane-state.refused, .lane .reason { color: var(--bad); }
.lane-tick { stroke: var(--line); }
.lane-now { stroke: var(--care); stroke-width: 2; }
.lane-now-text { font-weight: 700; }
svg.track text { font-size: 0.75rem; fill: var(--muted); stroke: none; }
svg.track .lane-now-text { fill: var(--care); }
/* The words of links begin where other words do. */
.moves, .pages { margin: 0.5rem 0 0.5rem -0.5rem; }
.share { display: grid; grid-template-columns: minmax(6rem, 1fr); gap: 0.2rem; min-width: 10rem; }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 12rem), 1fr)); gap: 0 1rem; align-items: end; }
fieldset { border: 1px solid var(--line); border-radius: 0.5rem; margin: 1rem 0; padding: 0.5rem 1rem 1rem; min-width: 0; }
legend { font-weight: 600; padding: 0 0.4rem; }
.field-error { color: var(--bad); margin: 0.25rem 0 0; font-size: 0.875rem; }
[aria-invalid=true] { border-color: var(--bad); border-width: 2px; }
button.second { background: none; color: var(--accent); }
.buttons { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
pre.command { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid var(--line); border-radius: 0.25rem; padding: 0.6rem 0.75rem; background: var(--ground); font-size: 0.875rem; }
.suggestions { padding-left: 1.25rem; }
.change-added { color: var(--good); }
.change-removed { color: var(--bad); }
@media (max-width: 69.9rem) { .lane-label.odd text { display: none; } }
@media (max-width: 40rem) {
  .lane { grid-template-columns: minmax(0, 1fr); }
  .lane.axis > div { display: none; }
}
`;
