import ora, { type Ora } from 'ora'
import type { CliContext } from './context.ts'
import { terminalWidth, textWidth } from './width.ts'

/** Width of the spinner and the space behind it; the lines after the first are indented by it. */
const INDENT = 2

/**
 * Text at the bottom of a terminal that is redrawn in place, below other output, behind a spinner.
 * If stderr is not a terminal, nothing is drawn.
 */
export class LiveText {
  readonly #context: Pick<CliContext, 'stderr' | 'env'>
  readonly #onResize = () => this.#resized()
  #render: (width: number) => readonly string[] = () => []
  #spinner: Ora | null = null
  /** The lines on the screen and the width for which they were rendered. */
  #lines: readonly string[] = []
  #drawnWidth = 0

  constructor(context: Pick<CliContext, 'stderr' | 'env'>) {
    this.#context = context
  }

  /** Width of the terminal; null if stderr is not one. */
  get width(): number | null {
    return terminalWidth(this.#context, this.#context.stderr)
  }

  /**
   * Shows the lines that `render` returns for a width: the first ones at once, later ones with the
   * next frame of the spinner, and again when the terminal is resized.
   */
  show(render: (width: number) => readonly string[]): void {
    this.#render = render
    const { width } = this
    if (width === null) return
    const text = this.#text(width)
    if (this.#spinner !== null) {
      this.#spinner.text = text
      return
    }
    const { stderr } = this.#context
    stderr.on('resize', this.#onResize)
    this.#spinner = ora({ stream: stderr, text, discardStdin: false, isEnabled: true }).start()
  }

  /** Prints text above the live text. */
  print(text: string): void {
    this.#context.stderr.write(text)
  }

  /** Removes the text. */
  end(): void {
    this.#context.stderr.off('resize', this.#onResize)
    this.#spinner?.stop()
    this.#spinner = null
  }

  #text(width: number): string {
    this.#lines = this.#render(width - INDENT)
    this.#drawnWidth = width
    return this.#lines.join(`\n${' '.repeat(INDENT)}`)
  }

  /** The spinner clears as many rows as it drew, but a narrower terminal has wrapped the lines. */
  #resized(): void {
    const { width } = this
    if (width === null || this.#spinner === null) return
    const wrapped = this.#rows(width) - this.#rows(this.#drawnWidth)
    if (wrapped > 0) this.#context.stderr.write(`\u001b[${wrapped}A\u001b[J`)
    this.#spinner.text = this.#text(width)
  }

  #rows(width: number): number {
    const rows = this.#lines.map(line => Math.ceil((INDENT + textWidth(line)) / width))
    return rows.reduce((sum, count) => sum + Math.max(1, count), 0)
  }
}
