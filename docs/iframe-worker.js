// The search of the site runs in a worker, which browsers do not start for pages opened from disk. For such pages this
// runs the worker's script in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      const load = source => new Promise((loaded, failed) => {
        const script = this.inside.document.createElement("script")
        Object.assign(script, { src: source, onload: loaded, onerror: failed })
        this.inside.document.body.append(script)
      })
      this.inside.importScripts = (...sources) => Promise.all(sources.map(load))
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = load(url)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })))
    }
  }
}
