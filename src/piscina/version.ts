/** The version of piscina whose interface this is. */
export const version = '5.3.2'
