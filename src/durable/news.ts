/**
 * What other processes hear when a transaction commits. `true`: too many ids for one notification; a listener
 * reads the rows of all that it waits for.
 */
export interface News {
  /** Queues that have startable runs. */
  readonly queues?: readonly string[] | true
  readonly ended?: readonly string[] | true
  readonly cancelled?: readonly string[] | true
  readonly messages?: readonly string[] | true
  readonly progress?: readonly string[] | true
}

/** A notification has at most 8,000 bytes. */
const BYTES_MAX = 7000

export function newsText(news: News): string {
  const text = JSON.stringify(news)
  if (Buffer.byteLength(text) <= BYTES_MAX) return text
  return JSON.stringify(Object.fromEntries(Object.keys(news).map(key => [key, true])))
}

/** A payload that is not ours counts as news of everything. */
export function parseNews(text: string): News {
  try {
    return JSON.parse(text) as News
  } catch {
    return { queues: true, ended: true, cancelled: true, messages: true, progress: true }
  }
}
