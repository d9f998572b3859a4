// Search of the site from a folder: browsers start no worker from a file, so a hidden frame runs its script in the page's
// own thread. mkdocs.yml names this file; the offline plugin would otherwise have every page fetch one like it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const script = frame.contentDocument.createElement("script");
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      script.onload = () => {
        for (const data of this.waiting) this.deliver(data);
        this.waiting = undefined;
      };
      script.src = url;
      frame.contentDocument.body.append(script);
    }
    deliver(data) {
      this.scope.dispatchEvent(new MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.deliver(data);
    }
  };
}
