import workerpool from 'workerpool'
import { add, hog, touch, when } from './work.mjs'

workerpool.worker({ add, hog, touch, when })
