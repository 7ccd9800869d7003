import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fingerprint, needsSecret, readSecret } from '../../src/db/service-secret.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { tempFolder } from '../support/database.ts'

const place = (given: { secret?: string; secretFile?: string; dataDir?: string } = {}) => ({
  secret: null,
  secretFile: null,
  dataDir: tempFolder(),
  ...given,
})

test('a secret is generated once, readable only by its owner', () => {
  const at = place({ dataDir: join(tempFolder(), 'new') })
  expect(needsSecret(at)).toBe(true)
  const made = readSecret(at, systemRandom)
  expect(needsSecret(at)).toBe(false)
  expect(made).toMatch(/^[a-z0-9]{50}$/)
  expect(readSecret(at, systemRandom)).toBe(made)
  expect(statSync(join(at.dataDir, 'secret')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(at.dataDir, 'secret'), 'utf8')).toBe(`${made}\n`)
})

test('a configured secret takes precedence, and none is generated', () => {
  const at = place({ secret: 'given-by-hand-0123' })
  expect(needsSecret(at)).toBe(false)
  expect(readSecret(at, systemRandom)).toBe('given-by-hand-0123')
  expect(statSync(join(at.dataDir, 'secret'), { throwIfNoEntry: false })).toBeUndefined()
})

test('a configured file must exist and contain a secret of sufficient length', () => {
  const file = join(tempFolder(), 'own')
  const at = place({ secretFile: file })
  expect(needsSecret(at)).toBe(false)
  expect(() => readSecret(at, systemRandom)).toThrow(
    /own cannot be used: no such file or directory\. .*EV_SECRET_FILE/,
  )
  writeFileSync(file, 'short\n')
  expect(() => readSecret(at, systemRandom)).toThrow(/own is shorter than 16 characters/)
  writeFileSync(file, 'long-enough-0123456789\n')
  expect(readSecret(at, systemRandom)).toBe('long-enough-0123456789')
})

test('a fingerprint identifies a secret without revealing it', () => {
  expect(fingerprint('given-by-hand-0123')).toBe(fingerprint('given-by-hand-0123'))
  expect(fingerprint('given-by-hand-0123')).not.toBe(fingerprint('given-by-hand-0124'))
  expect(fingerprint('given-by-hand-0123')).toMatch(/^[0-9a-f]{64}$/)
})
