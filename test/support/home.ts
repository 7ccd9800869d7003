import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Simulator } from '../../src/simulator/simulator.ts'
import { onFileFinished } from './cleanup.ts'

/** What a command gave. */
export type Ran = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A folder of its own for a test, with `data` in it; goes with the file. */
export function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ev-test-'))
  onFileFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  mkdirSync(join(folder, 'data'))
  return folder
}

/** The settings by which `ev` meets a world instead of the network. */
export const towards = ({ dnsAddress, smtpPort }: Pick<Simulator, 'dnsAddress' | 'smtpPort'>) => [
  ...['--dns', dnsAddress, '--smtp-port', `${smtpPort}`, '--allow-ranges', '127.0.0.0/8'],
  ...['--helo', 'probe.example.com', '--special-domains', '--sessions-per-second', '1000'],
]
