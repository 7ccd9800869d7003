import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test('redocly lint finds no fault in docs/openapi.json', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      ...['node_modules/@redocly/cli/bin/cli.js', 'lint', 'docs/openapi.json'],
      // Warnings are errors.
      ...['--extends', 'recommended-strict'],
    ],
    {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  )
  expect({ status, output: stdout + stderr }).toEqual({
    status: 0,
    output: expect.stringContaining('Your API description is valid'),
  })
})
