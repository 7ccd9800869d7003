import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Simulator } from '../../src/simulator/simulator.ts'
import { onFileFinished } from './cleanup.ts'

/** The result of a command. */
export type Ran = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Expects nothing on stdout, and a message without a stack trace on stderr. */
export function expectSentence({ stdout, stderr }: Ran, about: RegExp): void {
  expect(stderr).toMatch(about)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(stdout).toBe('')
}

/** Creates a folder with a `data` directory, which is deleted after the test file. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ev-test-'))
  onFileFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  mkdirSync(join(folder, 'data'))
  return folder
}

/** Creates such a folder with files, by name. */
export function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = emptyFolder()
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return folder
}

/** Options that make `ev` use a simulator instead of the network. */
export const simulatorFlags = ({
  dnsAddress,
  smtpPort,
}: Pick<Simulator, 'dnsAddress' | 'smtpPort'>) => [
  ...['--dns', dnsAddress, '--smtp-port', `${smtpPort}`, '--allow-ranges', '127.0.0.0/8'],
  ...['--helo', 'probe.example.com', '--special-domains', '--sessions-per-second', '1000'],
]
