import { Arena } from '../../arena/memory/arena.ts'
import { keepTime, type TimekeeperBoot } from '../timekeeper/timekeeper.ts'
import { webClock } from './web-clock.ts'

/** The Web Worker of a timekeeper, for a page or one of its workers. */
addEventListener('message', ({ data }: MessageEvent<TimekeeperBoot>) => {
  const { buffer, region, origin } = data
  keepTime(Arena.attach(buffer).i32, region, webClock(origin))
})
