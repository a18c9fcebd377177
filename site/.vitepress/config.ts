import { defineConfig } from 'vitepress'
import { headingAnchor } from '../../scripts/headinganchor.ts'

/** The documentation as a site: the pages are those of docs/, the reference is written by scripts/api.ts. */
export default defineConfig({
  title: 'heddle',
  description: 'A preemptive multicore runtime for TypeScript',
  srcDir: '../docs',
  outDir: '../dist-site',
  cacheDir: '.cache',
  cleanUrls: true,
  lastUpdated: false,
  markdown: { anchor: { slugify: headingAnchor } },
  // The search index is one file of all pages.
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  // Chapters name files of the repository beside them.
  // The live pages are built after the chapters (scripts/livepages.ts).
  ignoreDeadLinks: [/\.\.\/(?!docs)/, /^\/live\//],
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/start' },
      {
        text: 'Live',
        items: [
          { text: 'Watch a kernel schedule', link: '/live/scheduler.html', target: '_self' },
          { text: 'Explore a check', link: '/live/checker.html', target: '_self' },
        ],
      },
      { text: 'Guides', link: '/guides/' },
      { text: 'How it works', link: '/concepts' },
      { text: 'Reference', link: '/api/' },
    ],
    sidebar: [
      {
        text: 'Begin',
        items: [
          { text: 'Start in five minutes', link: '/start' },
          { text: 'Concepts', link: '/concepts' },
          { text: 'Coming from …', link: '/coming-from' },
          { text: 'Limits, honestly', link: '/limits' },
        ],
      },
      {
        text: 'Guides',
        items: [
          { text: 'Run many things', link: '/guides/map' },
          { text: 'Cancel and clean up', link: '/guides/cancel' },
          { text: 'Share state', link: '/guides/share' },
          { text: 'Stay responsive', link: '/guides/responsive' },
          { text: 'Servers', link: '/guides/servers' },
          { text: 'Survive crashes', link: '/guides/crashes' },
          { text: 'In a browser', link: '/guides/browser' },
          { text: 'Test concurrent code', link: '/guides/testing' },
          { text: 'Five real bugs, found', link: '/guides/bugs' },
          { text: 'Find out what is slow', link: '/guides/slow' },
        ],
      },
      {
        text: 'Use',
        items: [
          { text: 'The kernel', link: '/kernel' },
          { text: 'Tasks that move', link: '/moving' },
          { text: 'Checkpoints and images', link: '/checkpoints' },
          { text: 'Durable runs', link: '/durable' },
          { text: 'Synchronisation', link: '/sync' },
          { text: 'Coroutines on one thread', link: '/coroutines' },
          { text: 'Compiling', link: '/compiling' },
          { text: 'Seeing it', link: '/tracing' },
          { text: 'The view', link: '/view' },
          { text: 'The checker', link: '/checker' },
          { text: 'Asynchronous code', link: '/asyncchecks' },
          { text: 'Weak memory', link: '/weakmemory' },
          { text: 'Scheduler policies', link: '/policies' },
        ],
      },
      {
        text: 'How it works',
        items: [
          { text: 'The five designs', link: '/designs' },
          { text: 'Arena', link: '/arena' },
          { text: 'Machines', link: '/machine' },
          { text: 'Scheduler', link: '/scheduler' },
          { text: 'Futexes', link: '/futex' },
          { text: 'Priority inheritance, robust locks', link: '/pi' },
          { text: 'Hand-off', link: '/handoff' },
          { text: 'Payloads', link: '/payloads' },
          { text: 'Recovery', link: '/recovery' },
          { text: 'Durable runs: the protocol', link: '/durable-protocol' },
          { text: 'Compiler', link: '/compiler' },
          { text: 'How heddle is tested', link: '/tested' },
          { text: 'Performance', link: '/performance' },
          { text: 'All figures', link: '/figures' },
          { text: 'Dependencies', link: '/dependencies' },
        ],
      },
      { text: 'Reference', items: [{ text: 'API', link: '/api/' }] },
    ],
  },
})
