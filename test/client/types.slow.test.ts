import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test('the types are those of the API: run tools/client-types.mjs when they are not', () => {
  const made = spawnSync(process.execPath, [join(ROOT, 'tools/client-types.mjs'), '--print'], {
    encoding: 'utf8',
  })
  expect(made.stderr).toBe('')
  expect(readFileSync(join(ROOT, 'src/client/types.ts'), 'utf8')).toBe(made.stdout)
})
