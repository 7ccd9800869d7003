import stringWidth from 'string-width'
import type { CliContext } from './context.ts'
import { widthOf } from './width.ts'

/** Clears from the cursor to the end of the screen. */
const CLEAR_DOWN = '\u001b[J'

/**
 * Text at the bottom of a terminal that is redrawn in place, below other output. If stderr is not a
 * terminal, nothing is drawn.
 */
export class LiveText {
  readonly #context: Pick<CliContext, 'stderr' | 'env'>
  readonly #onResize = () => this.#draw()
  #render: ((width: number) => readonly string[]) | null = null
  /** Widths of the lines on the screen. */
  #drawn: readonly number[] = []

  constructor(context: Pick<CliContext, 'stderr' | 'env'>) {
    this.#context = context
  }

  /** Width of the terminal; null if stderr is not one. */
  get width(): number | null {
    const { stderr } = this.#context
    const isTerminal = stderr.isTTY === true && (stderr.columns ?? 0) > 0
    return isTerminal ? widthOf(this.#context, stderr) : null
  }

  /** Draws the lines that `render` returns for a width, now and when the terminal is resized. */
  show(render: (width: number) => readonly string[]): void {
    if (this.#render === null) this.#context.stderr.on('resize', this.#onResize)
    this.#render = render
    this.#draw()
  }

  /** Prints text above the live text. */
  print(text: string): void {
    this.#context.stderr.write(`${this.#clear()}${text}`)
    this.#draw()
  }

  /** Removes the text. */
  end(): void {
    if (this.#render === null) return
    this.#context.stderr.off('resize', this.#onResize)
    this.#render = null
    this.#context.stderr.write(this.#clear())
  }

  #draw(): void {
    const { width } = this
    if (width === null || this.#render === null) return
    const lines = this.#render(width)
    const clear = this.#clear()
    this.#drawn = lines.map(line => stringWidth(line))
    this.#context.stderr.write(clear + lines.join('\n'))
  }

  /** Lines that a narrower terminal has wrapped since then take more rows. */
  #clear(): string {
    if (this.#drawn.length === 0) return ''
    const width = this.width ?? Number.POSITIVE_INFINITY
    const rows = this.#drawn.reduce((sum, drawn) => sum + Math.max(1, Math.ceil(drawn / width)), 0)
    this.#drawn = []
    return `\r${rows > 1 ? `\u001b[${rows - 1}A` : ''}${CLEAR_DOWN}`
  }
}
