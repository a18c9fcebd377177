/**
 * The symbols of piscina's interface. The public ones are registered, so that two copies of a module agree.
 */
export const transferableSymbol: unique symbol = Symbol.for('Piscina.transferable') as never
export const valueSymbol: unique symbol = Symbol.for('Piscina.valueOf') as never
export const queueOptionsSymbol: unique symbol = Symbol.for('Piscina.queueOptions') as never
/** On a value that `Piscina.move` returned. */
export const movableSymbol: unique symbol = Symbol.for('heddle.piscina.movable') as never
