export function sum(count) {
  'use task'
  let all = 0
  for (let i = 0; i < count; i++) all += i
  return all
}
