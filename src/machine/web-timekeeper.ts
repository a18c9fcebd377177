import { Arena } from '../arena/arena.ts'
import type { ThreadTimekeeperBoot } from './threadtimekeeper.ts'
import { keepTime } from './timekeeper.ts'

/** The Web Worker behind the timekeeper of a page or of one of its workers. */
addEventListener('message', ({ data }: MessageEvent<ThreadTimekeeperBoot>) => {
  const { buffer, region, origin } = data
  keepTime(Arena.attach(buffer).i32, region, () => performance.timeOrigin + performance.now() - origin)
})
