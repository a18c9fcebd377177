/** What a program is told whose bundle holds heddle, and not the files of its threads. */
export const bareBundle: string =
  'this program is a bundle that has taken heddle in without its plugin, and the files of its threads are not there. ' +
  'Build it with heddle/esbuild, /rollup, /rolldown, /webpack, /rspack or /vite; ' +
  'or leave heddle out of the bundle (esbuild --external:heddle, `external` or `externals` of the others)'
