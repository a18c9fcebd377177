/** A module whose import does not end: its top level awaits or computes for ever. */
if (new URL(import.meta.url).searchParams.get('how') === 'computes') for (;;);
await new Promise(resolve => setTimeout(resolve, 1e9))

export function unreachable(): void {}
