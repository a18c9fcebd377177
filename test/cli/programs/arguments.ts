/** Prints its arguments. */
console.log(JSON.stringify(process.argv.slice(2)))
