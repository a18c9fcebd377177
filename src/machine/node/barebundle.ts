/** The error for a bundle that contains heddle but not the files of its threads. */
export const bareBundle: string =
  'this program is a bundle that contains heddle but was built without its plugin, so the files of its threads are missing.  ' +
  'Build it with heddle/esbuild, /rollup, /rolldown, /webpack, /rspack or /vite; ' +
  'or leave heddle out of the bundle (esbuild --external:heddle, `external` or `externals` of the others)'
