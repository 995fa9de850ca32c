// Runs the search in a frame of a page that is opened as a file, where browsers refuse workers. The theme would load such a
// class from another host.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    this.frame = document.createElement("iframe")
    this.frame.hidden = true
    document.body.append(this.frame)
    const page = this.frame.contentWindow
    page.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
    const script = page.document.createElement("script")
    this.loaded = new Promise((resolve) => script.addEventListener("load", resolve))
    script.src = url
    page.document.body.append(script)
  }

  postMessage(data) {
    this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
  }

  terminate() {
    this.frame.remove()
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
}
