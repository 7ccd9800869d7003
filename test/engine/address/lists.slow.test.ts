import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../../..')
const LISTS = join(ROOT, 'src/engine/address/lists')

test('another build returns the same files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
  try {
    const baked = spawnSync(process.execPath, [join(ROOT, 'tools/bake-lists.mjs'), folder])
    expect(baked.stderr.toString()).toBe('')
    expect(readdirSync(folder)).toEqual(readdirSync(LISTS))
    for (const file of readdirSync(folder)) {
      const same = readFileSync(join(folder, file)).equals(readFileSync(join(LISTS, file)))
      expect([file, same]).toEqual([file, true])
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
