/**
 * Makes the page cross-origin isolated where its server does not send the two headers: a service worker adds them
 * to every answer, and the page loads once more. Returns an empty text when the page is isolated, else the reason.
 */
export async function isolate(): Promise<string> {
  if (globalThis.crossOriginIsolated) return ''
  const help =
    'The server must send Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.'
  if (!globalThis.isSecureContext || navigator.serviceWorker === undefined) {
    return `This page is not cross-origin isolated, and a service worker cannot help here: open it over https or on localhost. ${help}`
  }
  if (navigator.serviceWorker.controller !== null) {
    return `This page is not cross-origin isolated, though its service worker adds the headers. ${help}`
  }
  await navigator.serviceWorker.register(new URL('./headers.js', location.href))
  await navigator.serviceWorker.ready
  location.reload()
  return 'The page loads once more, with the headers that shared memory needs…'
}
