/** The version of piscina that has this interface. */
export const version = '5.3.2'
