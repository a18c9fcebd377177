import { ThreadWorker } from 'poolifier'
import { add, hog, touch, when } from './work.mjs'

export default new ThreadWorker({ add, hog, touch, when })
