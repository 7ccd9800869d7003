import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keysInFile } from '../../../src/engine/address/custom-list-file.ts'

// The limit that ships; list-file.test.ts has what it does with one of its own.
test('a list of 500,000 entries is taken, and one more is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
  const file = join(folder, 'own.txt')
  const most = Array.from({ length: 500_000 }, (_, n) => `d${n}.example`).join('\n')
  try {
    writeFileSync(file, most)
    expect([...keysInFile('blocked', file)]).toHaveLength(500_000)
    writeFileSync(file, `${most}\nmore.example`)
    expect(() => [...keysInFile('blocked', file)]).toThrow(/longer than 500000 entries/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
