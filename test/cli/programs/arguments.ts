/** Prints what it was given. */
console.log(JSON.stringify(process.argv.slice(2)))
