/** A module whose import does not end: it waits at its top, or computes there. */
if (new URL(import.meta.url).searchParams.get('how') === 'computes') for (;;);
await new Promise(resolve => setTimeout(resolve, 1e9))

export function unreachable(): void {}
