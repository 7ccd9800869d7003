import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEngine } from '../../../src/index.ts'

test('a list of 500,000 entries is accepted, and one more is rejected', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
  const file = join(folder, 'own.txt')
  const most = Array.from({ length: 500_000 }, (_, n) => `d${n}.example`).join('\n')
  try {
    writeFileSync(file, most)
    createEngine({ blockedFile: file })
    writeFileSync(file, `${most}\nmore.example`)
    expect(() => createEngine({ blockedFile: file })).toThrow(
      /longer than the maximum of 500000 entries/,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})
