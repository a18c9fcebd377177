import type { Palette } from './draw.ts'

/** The colours of Okabe and Ito, each in two shades: neighbours differ in hue and in lightness. */
const lightTasks = ['#0072b2', '#c96a00', '#009e73', '#a8548a', '#3a8fc4', '#8a6d00', '#5d6b7a', '#b5451b']
const darkTasks = ['#56b4e9', '#e69f00', '#2fc79c', '#e39cc5', '#8fd0f5', '#d8c94a', '#a9b4c2', '#f0803c']

/** Reads the colours of the page's style, so that canvas and page agree. */
export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches
  return {
    bg: colour('bg'),
    raised: colour('raised'),
    line: colour('line'),
    text: colour('text'),
    dim: colour('dim'),
    accent: colour('accent'),
    running: colour('running'),
    runnable: colour('runnable'),
    preempted: colour('preempted'),
    sleeping: colour('sleeping'),
    locked: colour('locked'),
    stopped: colour('stopped'),
    moved: colour('moved'),
    onRunning: isDark ? '#10141a' : '#ffffff',
    tasks: isDark ? darkTasks : lightTasks,
  }
}
