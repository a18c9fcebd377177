/**
 * JSON for a `jsonb` column, which takes no NUL and no half of a surrogate pair: each becomes U+FFFD. A text
 * of the program, such as the message of an error, may have them.
 */
export function jsonText(value: unknown): string {
  return storableJson(JSON.stringify(value))
}

/** The same of JSON that JSON.stringify has made. It escapes both, and of surrogates only lone halves. */
export function storableJson(json: string): string {
  return json.replace(/\\(?:u0000|ud[89a-f][\da-f]{2}|.)/g, escape =>
    escape.length === 6 ? String.raw`\ufffd` : escape,
  )
}
