/**
 * `node --import heddle/register main.ts`: functions marked 'use task' are compiled as they are loaded.
 * Workers inherit the flag, so their modules are compiled too.
 */
import './installloader.ts'
