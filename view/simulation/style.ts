export const simulationCss: string = `
.simulation { padding: 12px 16px; overflow: auto; }
.seed { display: flex; gap: 6px; align-items: center; margin-left: 12px; }
.clock { margin: 4px 0 10px; font-variant-numeric: tabular-nums; }
.simlane { display: flex; align-items: center; gap: 10px; height: 42px; border-bottom: 1px solid var(--line); }
.simlane .name { width: 11em; flex: none; }
.simlane small { display: block; color: var(--dim); }
.simlane .track { flex: 1; min-width: 0; height: 34px; background: var(--raised); position: relative; overflow: hidden; }
.simlane .run {
  position: absolute; top: 6px; height: 22px; box-sizing: border-box; padding: 0 4px; overflow: hidden; white-space: nowrap;
  font-size: 11px; line-height: 20px; border: 1px solid var(--tone); border-top-width: 3px; border-radius: 2px;
  background: color-mix(in srgb, var(--tone) 28%, var(--bg));
}
.simlane .run.open { top: 1px; height: 32px; line-height: 28px; font-weight: 600; }
.simlane .now { width: 12em; flex: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-weight: 600; }
.simlane .now.idle { color: var(--dim); font-weight: 400; }
.simaxis { margin: 3px 13.2em 14px 12.2em; }
.simtasks td { font-variant-numeric: tabular-nums; }
.simtasks th:nth-child(n+4) { text-align: right; }
.simtasks tr.running td { font-weight: 600; }
`
