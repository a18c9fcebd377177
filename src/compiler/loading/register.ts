/**
 * `node --import heddle/register main.ts`: compiles functions marked 'use task' when their modules are
 * loaded. Workers inherit the flag, so their modules are compiled too.
 */
import './installloader.ts'
