export const checkerCss: string = `
.checker { flex: 1; min-height: 0; display: flex; }
.checks { list-style: none; margin: 0; padding: 6px 0; width: 17em; overflow: auto; border-right: 1px solid var(--line); }
.checks li { display: flex; gap: 8px; padding: 5px 12px; cursor: pointer; }
.checks li.selected { background: var(--raised); box-shadow: inset 3px 0 var(--accent); }
.checks small { display: block; color: var(--dim); }
.result { font-weight: 700; }
.result.failed, .result.wrong { color: var(--bad); }
.result.passed { color: var(--good); }
.check { flex: 1; min-width: 0; display: flex; flex-direction: column; padding: 12px 16px 0; overflow: auto; }
.end { margin: 0; padding: 6px 10px; border-left: 4px solid var(--dim); background: var(--raised); }
.end.failed { border-left-color: var(--bad); }
.end.passed { border-left-color: var(--good); }
.detail { margin: 4px 0; color: var(--dim); }
.failing { flex: 1; min-height: 0; display: flex; gap: 16px; }
.order { flex: 3; min-width: 0; display: flex; flex-direction: column; }
.failing aside { flex: 2; width: auto; min-width: 15em; max-width: 44em; display: flex; flex-direction: column; min-height: 0; padding: 0; border: 0; background: none; overflow: visible; }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; margin: 8px 0; }
.note { color: var(--dim); margin-left: 6px; min-height: 1.4em; }
.scroll { flex: 1; min-height: 8em; overflow: auto; border: 1px solid var(--line); border-radius: 6px; }
.steps { font: 12px/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.threads { display: flex; position: sticky; top: 0; z-index: 2; background: var(--raised); border-bottom: 1px solid var(--line); }
.thread { padding: 5px 8px; font-weight: 700; box-sizing: border-box; border-top: 3px solid var(--tone); }
.rows { position: relative; }
.edges { position: absolute; inset: 0 auto auto 0; pointer-events: none; z-index: 1; }
.edges path { fill: none; stroke: var(--dim); stroke-width: 1.2; opacity: .55; }
.edges path.near { stroke: var(--accent); stroke-width: 2; opacity: 1; }
.edges path.race { stroke: var(--bad); stroke-width: 2.5; stroke-dasharray: 6 3; opacity: 1; }
.edges marker path { stroke: none; fill: var(--dim); opacity: 1; }
.edges marker.near path { fill: var(--accent); }
.edges marker.race path { fill: var(--bad); }
.step { position: absolute; left: 0; right: 0; display: flex; align-items: center; box-sizing: border-box; border-bottom: 1px solid transparent; cursor: default; touch-action: none; user-select: none; }
.step:hover { background: var(--raised); }
.step.selected { background: color-mix(in srgb, var(--accent) 14%, transparent); }
.step.dragged { opacity: .45; }
.step .number { flex: none; text-align: right; padding-right: 10px; box-sizing: border-box; color: var(--dim); }
.step.marked .number { color: var(--bad); font-weight: 700; }
.access {
  flex: none; box-sizing: border-box; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; padding: 3px 8px;
  border: 1px solid var(--line); border-left: 4px solid var(--tone); border-radius: 4px; background: var(--bg); cursor: grab;
}
.step.marked .access { border-color: var(--bad); border-left-width: 4px; box-shadow: 0 0 0 1px var(--bad); }
.access i { font-style: normal; color: var(--dim); }
.access .was { color: var(--bad); font-style: normal; font-weight: 700; }
.drop { position: absolute; left: 0; right: 0; height: 3px; background: var(--accent); z-index: 3; }
.t0 { --tone: #0072b2; } .t1 { --tone: #e69f00; } .t2 { --tone: #009e73; } .t3 { --tone: #cc79a7; }
.t4 { --tone: #56b4e9; } .t5 { --tone: #d55e00; } .t6 { --tone: #b8a500; } .t7 { --tone: #6b7280; }
.words table, .sites { border-collapse: collapse; width: 100%; }
.words th { text-align: left; font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.words td { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; text-align: right; }
.words th, .words td, .sites th, .sites td { padding: 3px 8px; border-bottom: 1px solid var(--line); }
.words tr.touched { background: color-mix(in srgb, var(--accent) 14%, transparent); }
.words s { color: var(--dim); }
.words { max-height: 40%; overflow: auto; margin-bottom: 12px; flex: none; }
.source { flex: 1; min-height: 6em; display: flex; flex-direction: column; }
.source ol { flex: 1; margin: 0 0 12px; padding: 0 0 0 3.6em; overflow: auto; border: 1px solid var(--line); border-radius: 6px; font: 12px/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; color: var(--dim); }
.source li { white-space: pre; padding-left: 6px; }
.source li::marker { content: counter(list-item) '  '; }
.source li.here { background: color-mix(in srgb, var(--accent) 18%, transparent); box-shadow: inset 3px 0 var(--accent); }
.source code { background: none; border: 0; padding: 0; color: var(--text); }
.explored { max-width: 62em; }
.explored progress { width: 100%; accent-color: var(--accent); }
.charts { display: flex; flex-wrap: wrap; gap: 24px; margin: 16px 0; }
.charts figure { flex: 1; min-width: 18em; margin: 0; }
.charts figcaption, caption { text-align: left; font-weight: 600; margin-bottom: 6px; }
.charts figure svg { width: 100%; height: 130px; border-bottom: 1px solid var(--dim); display: block; }
.charts figure rect { fill: var(--running); }
.axis { display: flex; justify-content: space-between; margin: 3px 0; color: var(--dim); }
.sites { margin: 0 0 18px; }
.sites th { text-align: left; color: var(--dim); font-weight: 600; }
.sites .count, .sites th:last-child { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 760px) { .failing, .checker { flex-direction: column; } .checks { width: auto; max-height: 9em; } }
`
