import xterm from '@xterm/headless'
import { onTestFinished } from 'vitest'

/** A terminal emulator. */
export type Screen = {
  /** Returns the lines that a user sees, without blank ones at the end. */
  lines(): string[]
  /** Processes output of a program. */
  write(text: string): Promise<void>
  resize(columns: number): void
}

/** Returns a terminal with 24 rows, disposed after the test. */
export function screen(columns: number): Screen {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows: 24,
    allowProposedApi: true,
    convertEol: true,
  })
  onTestFinished(() => terminal.dispose())
  return {
    lines() {
      const { active } = terminal.buffer
      const lines = Array.from({ length: active.length }, (_, row) =>
        (active.getLine(row)?.translateToString(true) ?? '').trimEnd(),
      )
      return lines.slice(0, lines.findLastIndex(line => line !== '') + 1)
    },
    write: text => new Promise(resolve => terminal.write(text, resolve)),
    resize: cols => terminal.resize(cols, 24),
  }
}
