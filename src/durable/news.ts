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

const everything: News = { queues: true, ended: true, cancelled: true, messages: true, progress: true }

/** A payload that is not ours counts as news of everything: any user of the database may notify. */
export function parseNews(text: string): News {
  try {
    const news: unknown = JSON.parse(text)
    return isNews(news) ? news : everything
  } catch {
    return everything
  }
}

function isNews(news: unknown): news is News {
  if (typeof news !== 'object' || news === null) return false
  return Object.keys(everything).every(key => {
    const ids = (news as Record<string, unknown>)[key]
    return ids === undefined || ids === true || Array.isArray(ids)
  })
}
