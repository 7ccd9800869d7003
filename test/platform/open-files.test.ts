import { expect, test } from 'vitest'
import { connectionsFor, isOutOfDescriptors } from '../../src/platform/open-files.ts'

test.each([
  ['no limit', null, 200, 200],
  ['a limit with room for all', 456, 200, 200],
  ['a limit that is a little lower', 455, 200, 200],
  ['half of the free files', 256, 200, 108],
  ['64 open files', 64, 200, 12],
  ['64 open files and few connections', 64, 10, 10],
  ['fewer files than a process needs', 16, 200, 1],
])('%s', (_, filesMax, wanted, connections) => {
  expect(connectionsFor(filesMax, wanted)).toBe(connections)
})

test.each([
  [Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' }), true],
  [Object.assign(new Error('open'), { code: 'ENFILE' }), true],
  [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), false],
  [new Error('EMFILE'), false],
  [null, false],
])('%s', (error, is) => {
  expect(isOutOfDescriptors(error)).toBe(is)
})
