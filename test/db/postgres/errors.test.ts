import { expect, test } from 'vitest'
import { isStorageError } from '../../../src/db/database.ts'

const withCode = (code: string) => Object.assign(new Error('x'), { code })

test.each([
  ['0A000', 'a standby, which cannot read unlogged tables'],
  ['08000', 'connection exception'],
  ['08006', 'connection failure'],
  ['08007', 'transaction resolution unknown'],
  ['25006', 'read-only: a standby, or a server that was demoted'],
  ['25P03', 'idle in transaction for too long'],
  ['40001', 'serialization failure'],
  ['40P01', 'deadlock'],
  ['53100', 'disk full'],
  ['53200', 'out of memory'],
  ['53300', 'too many connections'],
  ['55P03', 'lock not available'],
  ['57014', 'cancelled by the statement timeout'],
  ['57P01', 'shutdown by the administrator'],
  ['57P02', 'crash shutdown'],
  ['57P03', 'cannot connect now: starting or recovering'],
  ['57P05', 'idle session'],
  ['58030', 'input or output error'],
  ['ECONNREFUSED', 'no server'],
  ['EAI_AGAIN', 'no name'],
])('%s (%s) means "not now"', code => {
  expect(isStorageError(withCode(code))).toBe(true)
})

test.each([
  ['22001', 'value too long'],
  ['23505', 'unique violation'],
  ['25P02', 'in a failed transaction'],
  ['40002', 'constraint violation at commit'],
  ['42501', 'insufficient privilege'],
  ['42P01', 'undefined table'],
  ['55000', 'object not in prerequisite state'],
  ['XX000', 'internal error'],
  ['', 'no code'],
])('%s (%s) is a fault', code => {
  expect(isStorageError(withCode(code))).toBe(false)
})
